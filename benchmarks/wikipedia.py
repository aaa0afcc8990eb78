"""Reading Wikipedia: agreement with mwparserfromhell, and speed and recall beside wikipedia2vec and wikiextractor."""
