"""What searches return: functions of the prediction, by the family that they belong to, and the functions in them."""

import lazy_loader as _lazy

# Imported when first used; each stands beside its search in `polycal.families`.
__getattr__, __dir__, __all__ = _lazy.attach(
    __name__.rpartition(".")[0],
    submod_attrs={
        "families.canonical": ["TableWitness"],
        "families.decision": ["DecisionWitness"],
        "families.full_smooth": ["FullSmoothWitness"],
        "families.halfspace": ["HalfspaceWitness"],
        "families.kernel": ["KernelWitness"],
        "families.learner": ["LearnerWitness"],
        "families.low_degree": ["MonomialWitness"],
        "families.projected": ["ProjectedWitness"],
        "families.questions": ["SubsetWitness", "TopWitness"],
        "families.swap": ["SwapWitness"],
        "families.top_set": ["TopSetWitness"],
        "families.sigmoid": ["SigmoidWitness"],
        "families.slices": ["SliceWitness"],
        "families.witness": ["Witness"],
        "measures.functions": ["LipschitzFunction", "StepFunction"],
    },
)
