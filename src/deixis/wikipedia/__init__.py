"""Wikipedia in: dumps, wikitext, redirects, articles, completion, training windows."""
