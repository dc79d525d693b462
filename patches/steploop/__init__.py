"""The step-loop patch: a decode, frame, denoise or streaming loop whose step becomes a CUDA graph."""
