"""What goes with points: sizes, labels, links, units, blocks of rows."""
