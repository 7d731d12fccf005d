"""Records of measurements by commit: model, codec, git order, stores."""
