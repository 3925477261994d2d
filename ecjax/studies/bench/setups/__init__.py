"""What the cases time: set-ups by family, and the alternatives that ecjax is timed beside."""
