"""Descriptions of tables as other programs write them; small, made up, and public."""

from pydantic import TypeAdapter, ValidationError

from dpsynth.columns.kinds import ColumnSpec

VISITS_SCHEMA = """\
{
  "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
  "fields": [
    {"name": "visit_id", "type": "string", "format": "uuid"},
    {"name": "patient", "type": "integer", "constraints": {"required": true, "unique": true}},
    {"name": "age", "title": "Age in years", "type": "integer",
     "constraints": {"required": true, "minimum": 0, "maximum": "110"}},
    {"name": "children", "type": "integer", "constraints": {"exclusiveMinimum": -1, "exclusiveMaximum": 20}},
    {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m", "NA"]}},
    {"name": "triage", "type": "integer", "categoriesOrdered": true,
     "categories": [{"value": 1, "label": "immediate"}, {"value": 2, "label": "urgent"}, {"value": 3}]},
    {"name": "cost", "type": "number", "decimalChar": ",", "groupChar": ".",
     "constraints": {"minimum": 0, "maximum": 10000}},
    {"name": "insured", "type": "boolean", "trueValues": ["ja"], "falseValues": ["nein"]},
    {"name": "admitted", "type": "date", "format": "%d/%m/%Y",
     "constraints": {"minimum": "01/02/2020", "maximum": "2026-12-31"}},
    {"name": "arrived", "type": "datetime", "constraints": {"minimum": "2020-01-01T00:00:00Z"}},
    {"name": "seen_at", "type": "time", "format": "%H:%M"},
    {"name": "stay", "type": "duration", "constraints": {"minimum": "PT0S", "maximum": "P10D"}},
    {"name": "born", "type": "year", "constraints": {"minimum": 1900, "maximum": "2026"}},
    {"name": "month", "type": "yearmonth", "constraints": {"minimum": "2020-01", "maximum": "2021-06"}},
    {"name": "postcode", "type": "string", "constraints": {"pattern": "[0-9]{5}"},
     "missingValues": ["", "unknown"]},
    {"name": "smokes", "type": "string", "constraints": {"enum": ["yes", "no"]},
     "missingValues": [{"value": "-1", "label": "refused"}, {"value": "-2", "label": "not asked"}]},
    {"name": "licence", "type": "string", "constraints": {"pattern": "[A-Z]+-[0-9]{1,4}"}},
    {"name": "weight", "type": "number", "bareNumber": false, "constraints": {"minimum": 0, "maximum": 300}},
    {"name": "remarks", "type": "string", "description": "Free text\\nof the nurse"},
    {"name": "whatever"},
    {"name": "place", "type": "geopoint"}
  ],
  "missingValues": ["", "NA"],
  "primaryKey": ["visit_id"]
}
"""

VISITS_DECLARED = {
    "visit_id": {"type": "identifier"},
    "patient": {"type": "identifier"},
    "age": {"type": "integer", "min": 0, "max": 110, "missing": False},
    "children": {"type": "integer", "min": 0, "max": 19, "missing": "NA"},
    "sex": {"type": "category", "values": ["f", "m"], "missing": "NA"},
    "triage": {"type": "ordered", "values": [1, 2, 3], "missing": "NA"},
    "cost": {
        "type": "number", "min": 0, "max": 10000, "format": {"thousands": ".", "decimal": ","},
        "missing": "NA",
    },
    "insured": {"type": "boolean", "values": ["nein", "ja"], "missing": "NA"},
    "admitted": {
        "type": "date", "min": "2020-02-01", "max": "2026-12-31", "format": "%d/%m/%Y", "missing": "NA",
    },
    "arrived": {"type": "datetime", "min": "2020-01-01T00:00:00", "max": None, "missing": "NA"},
    "seen_at": {"type": "time", "format": "%H:%M", "missing": "NA"},
    "stay": {"type": "duration", "min": "PT0S", "max": "P10D", "missing": "NA"},
    "born": {"type": "integer", "min": 1900, "max": 2026, "missing": "NA"},
    "month": {
        "type": "date", "min": "2020-01-01", "max": "2021-06-01", "unit": "month", "format": "%Y-%m",
        "missing": "NA",
    },
    "postcode": {"type": "text", "pattern": "[0-9]{5}", "keep": 3, "missing": "unknown"},
    "smokes": {"type": "category", "values": ["yes", "no"], "missing": {"distinct": ["-1", "-2"]}},
    "licence": {"type": "category", "values": None, "missing": "NA"},
    "weight": {"type": "number", "min": 0, "max": 300, "format": None, "missing": "NA"},
    "remarks": {"type": "category", "values": None, "missing": "NA"},
    "whatever": {"type": None, "missing": "NA"},
}  # fmt: skip

PACKAGE = """\
{
  "name": "hospital",
  "resources": [
    {"name": "wards", "path": "wards.csv", "schema": "schemas/wards.json"},
    {"name": "visits", "path": "visits.csv", "dialect": {"delimiter": ";"},
     "schema": {"fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}}]}}
  ]
}
"""

HOTEL_METADATA = """\
{
  "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1",
  "primary_key": "guest_email",
  "alternate_keys": ["credit_card_number"],
  "sequence_key": "family",
  "columns": {
    "guest_email": {"sdtype": "email", "pii": true},
    "family": {"sdtype": "id", "regex_format": "F_[0-9]{4}"},
    "has_rewards": {"sdtype": "boolean"},
    "room_type": {"sdtype": "categorical"},
    "stars": {"sdtype": "categorical", "order": [1, 2, 3, 4, 5]},
    "amenities_fee": {"sdtype": "numerical", "computer_representation": "Float"},
    "nights": {"sdtype": "numerical", "computer_representation": "UInt8"},
    "checkin_date": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
    "booked": {"sdtype": "datetime", "datetime_format": "%Y-%m-%dT%H:%M:%S"},
    "left": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M:%S %Z"},
    "billing_address": {"sdtype": "address", "pii": true},
    "country": {"sdtype": "country_code", "pii": false},
    "latitude": {"sdtype": "latitude", "pii": false},
    "credit_card_number": {"sdtype": "credit_card_number", "pii": true},
    "score": {"sdtype": "unknown", "pii": false}
  },
  "column_relationships": []
}
"""

HOTEL_DECLARED = {
    "guest_email": {"type": "identifier"},
    "family": {"type": "identifier"},
    "has_rewards": {"type": "boolean"},
    "room_type": {"type": "category", "values": None},
    "stars": {"type": "ordered", "values": [1, 2, 3, 4, 5]},
    "amenities_fee": {"type": "number", "min": None, "max": None},
    "nights": {"type": "integer", "min": 0, "max": None},
    "checkin_date": {"type": "date", "min": None, "max": None, "format": "%d %b %Y"},
    "booked": {"type": "datetime", "min": None, "max": None},
    "left": {"type": "datetime", "min": None, "max": None, "format": None},
    "billing_address": {"type": "identifier"},
    "country": {"type": "category", "values": None},
    "latitude": {"type": "number", "min": -90, "max": 90},
    "credit_card_number": {"type": "identifier"},
    "score": {"type": None},
}

TWO_TABLES = """\
{
  "METADATA_SPEC_VERSION": "V1",
  "tables": {
    "hotels": {"primary_key": "hotel_id", "columns": {
      "hotel_id": {"sdtype": "id", "regex_format": "HID_[0-9]{3}"}, "rating": {"sdtype": "numerical"}}},
    "guests": {"primary_key": "guest_email", "columns": {
      "guest_email": {"sdtype": "email"}, "hotel_id": {"sdtype": "id"}, "room": {"sdtype": "categorical"}}}
  },
  "relationships": [{"parent_table_name": "hotels", "parent_primary_key": "hotel_id",
                     "child_table_name": "guests", "child_foreign_key": "hotel_id"}]
}
"""

GOOGLE_DOMAIN = """\
AGE:
  clip_to_range: true
  dtype: int
  max_value: 50.0
  min_value: 10.0
INCOME:
  clip_to_range: false
  description: Dollars a year
  dtype: float
  interval_handling: midpoint
  max_value: 100000.5
  min_value: 0.0
  sentinel: -1
  type: NumericalAttribute
BPL:
  out_of_domain_index: 0
  possible_values:
  - 1
  - 2
  - 4
GENDER:
  out_of_domain_index: 2
  possible_values: [M, F, U]
  type: CategoricalAttribute
MARRIED:
  possible_values: [null, 'yes', 'no']
RATE:
  possible_values: [0.5, 1.0, 1.5]
VETERAN:
  out_of_domain_index: 1
  possible_values: [false, true]
CONSTANT:
  possible_values: [1]
JOB:
  default_value: <OOD>
  type: OpenSetCategoricalAttribute
EMPTY: {}
LETTER:
  max_tokens: 256
"""

OPEN_SET: dict[str, object] = {"type": "category", "open": True}
"""Where the grammar finds values privately; a gap where it doesn't."""
try:
    TypeAdapter(ColumnSpec).validate_python(OPEN_SET)
except ValidationError:
    OPEN_SET = {"type": "category", "values": None}

GOOGLE_DECLARED = {
    "AGE": {"type": "integer", "min": 10, "max": 50, "missing": False},
    "INCOME": {"type": "number", "min": 0, "max": "100000.5", "missing": "-1"},
    "BPL": {"type": "category", "values": [1, 2, 4], "missing": False},
    "GENDER": {"type": "category", "values": ["M", "F", "U"], "missing": False, "default": "U"},
    "MARRIED": {"type": "category", "values": ["yes", "no"]},
    "RATE": {"type": "category", "values": ["0.5", 1, "1.5"], "missing": False},
    "VETERAN": {"type": "boolean", "missing": False, "default": True},
    "JOB": OPEN_SET,
    "EMPTY": OPEN_SET,
}

PANDERA_LIST = """\
schema_type: dataframe
version: 0.24.0
columns:
  age:
    title: null
    description: Age in years
    dtype: int64
    nullable: false
    checks:
    - min_value: 0
      max_value: 120
      include_min: true
      include_max: false
      options: {check_name: in_range, raise_warning: false, ignore_na: true}
    unique: false
    coerce: false
    required: true
    regex: false
  sex:
    dtype: str
    nullable: true
    checks:
    - value: [F, M]
      options: {check_name: isin}
  pay:
    dtype: float64
    nullable: true
    checks:
    - value: 0.0
      options: {check_name: greater_than_or_equal_to}
    - value: 99999.99
      options: {check_name: less_than}
    - value: 3
      options: {check_name: my_own_check}
  seen:
    dtype: datetime64[ns]
    nullable: false
    checks:
    - value: '2010-01-01 00:00:00'
      options: {check_name: greater_than}
    - value: '2020-12-31 00:00:00'
      options: {check_name: less_than}
  code:
    dtype: str
    nullable: false
    checks:
    - value: ^[A-Z]{2}[0-9]{4}$
      options: {check_name: str_matches}
  waited: {dtype: 'timedelta64[ns]', nullable: false, checks: null}
  member: {dtype: bool, nullable: false, checks: null}
  ward: {dtype: category, nullable: false, checks: null}
  person: {dtype: str, nullable: false, checks: null, unique: true}
  store_+: {dtype: str, nullable: false, regex: true}
checks: null
index: null
coerce: false
strict: false
"""

PANDERA_DECLARED = {
    "age": {"type": "integer", "min": 0, "max": 119, "missing": False},
    "sex": {"type": "category", "values": ["F", "M"]},
    "pay": {"type": "number", "min": 0, "max": "99999.99"},
    "seen": {
        "type": "datetime",
        "min": "2010-01-01T00:00:00",
        "max": "2020-12-31T00:00:00",
        "missing": False,
    },
    "code": {"type": "text", "pattern": "^[A-Z]{2}[0-9]{4}$", "keep": 2, "missing": False},
    "waited": {"type": "duration", "min": None, "max": None, "format": None, "missing": False},
    "member": {"type": "boolean", "missing": False},
    "ward": {"type": "category", "values": None, "missing": False},
    "person": {"type": "identifier"},
}

PANDERA_MAPPING = """\
schema_type: dataframe
version: 0.7.0
columns:
  age:
    pandas_dtype: int
    nullable: false
    checks: {greater_than_or_equal_to: 18.0, less_than_or_equal_to: {max_value: 90.0}}
    allow_duplicates: true
  sex:
    pandas_dtype: str
    nullable: false
    checks:
      isin: {allowed_values: [F, M]}
"""

PANDERA_FLAT = """\
schema_type: dataframe
api: pandas
columns:
  age:
    dtype: uint8
    less_than_or_equal_to: 90
  sex:
    dtype: object
    isin: [F, M]
    str_length: {min_value: 1, max_value: 1, exact_value: null}
index:
- dtype: int64
coerce: true
"""

MBI_DOMAIN = '{"age": 85, "getting in/out of bed": 2, "fare": 200, "constant": 1, "zip": 20000}'

ANY_CODE = {"first": 1, "last": 1, "one_value": 1}
MBI_DECLARED = {
    "age": {"type": "integer", "min": 0, "max": 84, "missing": False, "expected": ANY_CODE},
    "getting in/out of bed": {"type": "integer", "min": 0, "max": 1, "missing": False, "expected": ANY_CODE},
    "fare": {"type": "integer", "min": 0, "max": 199, "bins": 200, "missing": False, "expected": ANY_CODE},
    "zip": {"type": "integer", "min": 0, "max": 19999, "missing": False, "expected": ANY_CODE},
}

MANIFEST = """\
{
  "format": 1, "release": "visits", "release_id": "20260101-1", "guarantee": {"epsilon": 1.0},
  "columns": [
    {"name": "age", "type": "integer", "edges": [0.0, 18.0, 65.0, 90.5], "decimals": 0,
     "labels": ["0 to 17", "18 to 64", "65 to 90", "(missing)"],
     "missing": {"modelled": true, "markers": ["?"]}},
    {"name": "cost", "type": "number", "edges": [0.0, 0.01, 250.0], "decimals": 2,
     "labels": ["0.00", "[0.01, 250]"], "missing": {"modelled": false, "markers": []}},
    {"name": "city", "type": "text", "ordered": false, "other": "other",
     "labels": ["Oslo", "other", "(missing)"], "missing": {"modelled": true, "markers": []}},
    {"name": "id", "type": "text", "made_up_from": "P001"},
    {"name": "twice", "type": "integer", "computed_from": "age + age", "missing_is_written": ""}
  ]
}
"""

MANIFEST_DECLARED = {
    "age": {"type": "integer", "bins": [0, 18, 65, 90], "missing": ["?"]},
    "cost": {"type": "number", "bins": ["0.0", "0.01", "250.0"], "decimals": 2, "missing": False},
    "city": {"type": "category", "values": ["Oslo"], "other": "other"},
    "id": {"type": "identifier", "surrogates": "P001"},
    "twice": {"type": None},
}

ALL = {
    "dpsynth": MANIFEST,
    "table-schema": VISITS_SCHEMA,
    "package": PACKAGE,
    "sdv": HOTEL_METADATA,
    "sdv of two": TWO_TABLES,
    "google-dpsynth": GOOGLE_DOMAIN,
    "pandera": PANDERA_LIST,
    "pandera 0.7": PANDERA_MAPPING,
    "pandera flat": PANDERA_FLAT,
    "mbi": MBI_DOMAIN,
}
"""One document or more of each format."""
