"""What figures call the methods of ``ecjax optimize``."""

METHOD_NAMES = {
    "certified": "certified",
    "published": "JLCM",
    "oblivious_lb": "oblivious load balancing",
    "random_cp": "random placement",
    "max_ec": "maximum code",
    "jlop": "JLOP (priority)",
    "jlwo": "JLWO (weighted)",
}
MARKERS = {
    "certified": "*",
    "published": "o",
    "oblivious_lb": "s",
    "random_cp": "^",
    "max_ec": "D",
    "jlop": "P",
    "jlwo": "X",
}
BY_CLASS = ("jlop", "jlwo")  # methods of queues by class
