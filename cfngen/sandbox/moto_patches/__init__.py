"""Patches of moto, for the rest of the process, where it lacks or contradicts AWS's behaviour, or is slow."""
