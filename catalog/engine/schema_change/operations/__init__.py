"""Operations of schema changes, a module each: their plans, and what they refuse before anything is done."""
