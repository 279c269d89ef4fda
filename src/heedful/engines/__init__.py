"""Model folders and the engines that run them without PyTorch."""
