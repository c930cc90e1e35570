"""The OpenAPI document and its page, made from the routes and schemas."""
