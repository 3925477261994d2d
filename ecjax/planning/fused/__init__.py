"""Steps of the published method's descent in one pass over the files, by a kernel written for GPUs."""
