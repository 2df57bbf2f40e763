"""Recall against a Slack for tests, so that anybody can try the Slack side without an account."""
