"""The steps that lead a store from empty to the tables of this perfci; run by Alembic."""
