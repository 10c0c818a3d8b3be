"""Every system that the paper names, and ours, on the same worlds and the same axes."""
