"""What lies in the warehouse: the catalogue, the journal of epochs, the tables of views."""
