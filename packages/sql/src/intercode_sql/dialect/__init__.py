"""MySQL 8's dialect: tokens, keywords, error messages, the parser and the rules for GROUP BY."""
