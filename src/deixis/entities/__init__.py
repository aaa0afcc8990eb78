"""Entities after training: add, change and remove them, or make a knowledge base of one's own."""

from deixis.entities.editing import add, alike, build, build_folder, describe, fit, remove, save_edited

__all__ = ["add", "alike", "build", "build_folder", "describe", "fit", "remove", "save_edited"]
