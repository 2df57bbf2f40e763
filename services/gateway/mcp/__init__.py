"""The front door for agents: tools over MCP, with the rights of the token that comes along."""
