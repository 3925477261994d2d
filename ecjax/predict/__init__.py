"""What a plan is predicted to deliver: bounds and estimates by class, under laws of service."""
