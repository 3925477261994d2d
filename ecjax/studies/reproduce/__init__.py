"""``ecjax reproduce``: what becomes of the claims of the papers that ecjax implements, decided by a program.

A paper is a module of ``claims``: its studies, which are commands of the other jobs, and its claims, each with the rule
that judges it by the tables of those studies. ``run`` runs every study once and judges the claims; a claim that does
not hold says why.

To add a paper:

1. its name into ``options.PAPERS``;
2. a module ``claims.NAME`` (a package, where its rules are long) with a ``PAPER``, a ``claim.Paper``: studies, whose
   words follow ``ecjax`` and may name an experiment, with further words for ``size=small`` and ``size=full``; and
   claims in the order of the paper;
3. a rule per claim, a function of ``evidence.Evidence`` that gives a ``claim.Finding``: ``evidence["fig9"].runs`` and
   ``evidence["fig9"].dataset("latencies")`` are the tables of a study. A rule names only the studies that its claim
   lists; what it can compute by itself in a second needs none.
"""
