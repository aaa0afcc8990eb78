"""What is known of entities: titles, names, rows; opened, asked, changed."""
