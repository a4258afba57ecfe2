"""The papers' bounds as functions of what they depend on."""
