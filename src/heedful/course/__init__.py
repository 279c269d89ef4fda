"""Exercises of the course: answers that check themselves, hints on request, and pages of the attention in a lesson."""

from heedful.course.attention_page import AttentionPage
from heedful.course.checking import check, hint
from heedful.course.exercises import EXERCISES

__all__ = ["EXERCISES", "AttentionPage", "check", "hint"]
