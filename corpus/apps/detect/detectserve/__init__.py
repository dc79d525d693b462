"""Instance segmentation in small: a convolutional detector, non-maximum suppression, masks."""
