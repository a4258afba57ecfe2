"""Online label ranking by dual ascent (Shalev-Shwartz and Singer): updates I, II, III, for two complexities."""
