"""A small text-to-image service: text encoder, diffusion transformer, scheduler, decoder and a worker."""
