import contextlib, io, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber

ROWS = 2000

def described(mode, seed):
    describer = DataDescriber()
    with contextlib.redirect_stdout(io.StringIO()):
        if mode == "correlated":
            describer.describe_dataset_in_correlated_attribute_mode("rows.csv", k=1, epsilon=1, seed=seed)
        else:
            describer.describe_dataset_in_independent_attribute_mode("rows.csv", epsilon=1, seed=seed)
    return describer.data_description

if __name__ == "__main__":
    draw = np.random.RandomState(1)
    frame = pd.DataFrame({"sex": draw.choice(["f", "m"], ROWS), "smokes": draw.choice(["no", "yes"], ROWS)})
    frame.to_csv("rows.csv", index=False)
    errors = {"independent": [], "correlated": [], "network": []}
    for seed in range(1, 101):
        for mode in ("independent", "correlated"):
            found = described(mode, seed)
            root = found["bayesian_network"][0][1][0] if mode == "correlated" else "sex"
            true = (frame[root] == frame[root].min()).sum()
            errors[mode].append(found["attribute_description"][root]["distribution_probabilities"][0] * ROWS - true)
            if mode == "correlated":
                errors["network"].append(found["conditional_probabilities"][root][0] * ROWS - true)
    sd = {name: float(np.std(values)) for name, values in errors.items()}
    sd["together"] = float(np.corrcoef(errors["correlated"], errors["network"])[0, 1])
    print("deviation of a count in a histogram, independent mode:", round(sd["independent"], 2))  # 4
    print("of the same in correlated mode:", round(sd["correlated"], 2))  # 4
    print("of the same in the network's root:", round(sd["network"], 2))  # 2.8
    print("correlation of the last two:", round(sd["together"], 2))  # 0
    same = all(3 < sd[x] < 5.2 for x in ("independent", "correlated")) and 2 < sd["network"] < 3.8
    sys.exit(0 if same and abs(sd["together"]) < 0.35 else "changed")
