"""Texts about many subjects, put together from parts: for a model to embed where nobody gives real ones."""

import numpy as np

SENTENCES = 6

_SUBJECTS = {
    "payroll": "salary overtime bonus payslip deduction pension allowance timesheet contract tax",
    "gardening": "soil compost seedling tomato fertilizer pruning greenhouse weed irrigation harvest",
    "cardiology": "artery hypertension stroke cholesterol valve arrhythmia statin stent pulse infarction",
    "networking": "router firewall packet latency switch bandwidth tunnel gateway protocol subnet",
    "sailing": "anchor mast keel harbour tide rudder rigging current buoy headwind",
    "baking": "dough yeast oven flour crust butter sourdough glaze frosting whisk",
    "insurance": "premium claim liability deductible policyholder coverage adjuster renewal broker damage",
    "astronomy": "telescope galaxy comet orbit nebula spectrum eclipse supernova asteroid redshift",
    "railways": "locomotive timetable platform signal freight carriage gauge junction delay conductor",
    "immunology": "antibody vaccine antigen lymphocyte inflammation cytokine receptor allergy infection serum",
    "accounting": "ledger invoice audit depreciation balance receipt liability voucher reconciliation equity",
    "photography": "lens aperture shutter exposure tripod negative portrait contrast flash sensor",
    "law": "plaintiff verdict appeal statute testimony injunction settlement defendant jurisdiction clause",
    "geology": "basalt sediment fault mineral erosion magma quartz fossil crust earthquake",
    "football": "goalkeeper penalty midfield referee league tackle transfer stadium coach defender",
    "chemistry": "catalyst polymer solvent titration oxidation molecule reagent isotope acid crystal",
    "teaching": "curriculum pupil homework grading lesson exam classroom literacy seminar tutor",
    "logistics": "warehouse pallet shipment customs inventory courier container forklift dispatch route",
    "music": "violin rhythm chord melody orchestra tempo rehearsal soprano harmony drum",
    "energy": "turbine grid battery solar reactor transformer voltage insulation meter biomass",
    "software": "compiler deployment database commit regression thread cache migration parser rollback",
    "veterinary": "foal parasite kennel vaccination hoof litter grooming fracture livestock sedation",
    "tourism": "itinerary hostel museum visa excursion guide souvenir luggage booking resort",
    "aviation": "runway altitude cockpit turbulence fuselage propeller landing pilot radar fuel",
    "textiles": "cotton loom dye fabric weaving silk seam spindle wool embroidery",
    "construction": "scaffold concrete foundation beam permit crane insulation plaster drainage contractor",
    "nutrition": "protein fibre vitamin calorie appetite mineral obesity diet digestion glucose",
    "psychology": "anxiety memory therapy attention behaviour perception habit emotion trauma motivation",
    "fishing": "trawler net bait quota salmon reel hook spawning catch hatchery",
    "printing": "ink paper typeface press margin binding proof cartridge pigment layout",
}
_FRAMES = (
    "The {a} of {subject} depends on the {b} and on how early the {c} is checked.",
    "When the {a} fails, the {b} has to be replaced before anybody looks at the {c}.",
    "Most reports about the {a} say little about the {b}, although the {c} explains it.",
    "A {a} without a {b} is rare in {subject}; with a {c} it becomes common.",
    "We compared the {a} with the {b} over three years and found that the {c} made the difference.",
    "Nobody should change the {a} while the {b} is being measured by the {c}.",
    "How is the {a} related to the {b}, and what does the {c} have to do with it?",
    "New rules for the {a} came into force in spring: the {b} now needs a second {c}.",
    "In {subject} the {a} is handled first, then the {b}, and the {c} last.",
    "The cost of a {a} rose by a tenth because the {b} and the {c} became scarce.",
)


def made_texts(count: int, seed: int) -> list[str]:
    """Each about one subject, with a word of another here and there; the same ones for the same seed."""
    chance = np.random.default_rng(seed)
    names = list(_SUBJECTS)
    return [_text(names[int(chance.integers(len(names)))], names, chance) for _ in range(count)]


def _text(subject: str, names: list[str], chance: np.random.Generator) -> str:
    frames = chance.permutation(len(_FRAMES))[:SENTENCES]
    own, other = _SUBJECTS[subject].split(), _SUBJECTS[names[int(chance.integers(len(names)))]].split()
    return " ".join(_sentence(_FRAMES[int(at)], subject, own, other, chance) for at in frames)


def _sentence(frame: str, subject: str, own: list[str], other: list[str], chance: np.random.Generator) -> str:
    a, b = (own[int(at)] for at in chance.permutation(len(own))[:2])
    c = (other if chance.random() < 1 / 3 else own)[int(chance.integers(len(own)))]
    return frame.format(subject=subject, a=a, b=b, c=c)
