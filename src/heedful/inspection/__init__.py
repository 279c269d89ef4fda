"""What a model attends to: capture of attention weights and the page that shows them."""
