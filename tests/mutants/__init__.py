"""Mutation testing of the rooms that the guarantee rests on."""
