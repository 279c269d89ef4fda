"""Exercises of the course: answers that check themselves, and hints on request."""

from heedful.course.checking import check, hint
from heedful.course.exercises import EXERCISES

__all__ = ["EXERCISES", "check", "hint"]
