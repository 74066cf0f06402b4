"""Images: files, backbones, cached features."""
