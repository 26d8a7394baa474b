"""How a command shows what it has to say: as text, as JSON lines, as pictures."""
