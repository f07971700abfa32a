"""Label rates by group as fairlearn and aequitas have them: DATA.parquet LABEL FAVOURABLE COLUMN... -> JSON on stdout."""

from __future__ import annotations

import json
import sys
import warnings

import pandas as pd
import pyarrow.parquet as pq


def main() -> None:
    """One object a column: fairlearn's difference and ratio, and aequitas' share and ratio of each group to the largest rate."""
    warnings.simplefilter("ignore")
    from aequitas.bias import Bias
    from aequitas.group import Group
    from fairlearn.metrics import demographic_parity_difference, demographic_parity_ratio

    data, label, favourable, *columns = sys.argv[1:]
    table = pq.read_table(data).to_pandas()
    good = (table[label] == favourable).astype(int)
    frame = pd.DataFrame({"score": good, "label_value": good, **{column: table[column].astype(str) for column in columns}})
    crossed, _ = Group().get_crosstabs(frame, attr_cols=columns)
    best = {column: good.groupby(frame[column]).mean().idxmax() for column in columns}
    told = Bias().get_disparity_predefined_groups(
        crossed, original_df=frame, ref_groups_dict=best, check_significance=False, alpha=0.05, mask_significance=False
    )
    out = {}
    for column in columns:
        mine = told[told["attribute_name"] == column]
        out[column] = {
            "difference": float(demographic_parity_difference(good, good, sensitive_features=frame[column])),
            "ratio": float(demographic_parity_ratio(good, good, sensitive_features=frame[column])),
            "groups": {
                row.attribute_value: [float(row.pprev), float(row.pprev_disparity)] for row in mine.itertuples(index=False)
            },
        }
    sys.stdout.write(json.dumps(out))


if __name__ == "__main__":
    main()
