"""The Slack side of the gateway: what Slack sends, what people are told, where it is posted."""
