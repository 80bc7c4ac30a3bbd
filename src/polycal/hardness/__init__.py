"""The paper's lower bounds as data: instances on which every auditor must stay silent or fail."""
