"""Production rules that keep a view: what each operation on each table does to it, as data and as SQL."""
