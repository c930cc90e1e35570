// Validates the resources of KEDA in a JSON list on standard input; prints each that is not valid.
import { readFileSync } from "node:fs";
import * as keda from "@kubernetes-models/keda/keda.sh/v1alpha1";

for (const resource of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    new keda[resource.kind](resource).validate();
  } catch (error) {
    console.log(`${resource.kind}: ${error.message}`);
    process.exitCode = 1;
  }
}
