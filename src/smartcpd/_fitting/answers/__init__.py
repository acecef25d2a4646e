"""What a model answers when it is asked about itself: results that floors above work out."""
