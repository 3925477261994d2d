"""Jobs as functions: options in, result tables and figures out. Run without Hydra and without Ray."""
