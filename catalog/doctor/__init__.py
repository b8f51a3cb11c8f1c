"""What a machine and a store are like before anybody relies on them: examined one by one, and nothing is changed."""
