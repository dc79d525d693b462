"""A vision-language model that answers questions on pictures by one forward pass over picture and prompt."""
