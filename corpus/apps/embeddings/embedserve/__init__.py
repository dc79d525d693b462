"""An embedding service: texts are bucketed by length, encoded in batches, and searched on the device."""
