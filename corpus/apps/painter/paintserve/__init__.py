"""A class-conditional image sampler: a small U-Net, a second-order solver, one captured step."""
