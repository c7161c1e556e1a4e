"""What differs between operating systems, of which Linux alone has sandboxes."""
