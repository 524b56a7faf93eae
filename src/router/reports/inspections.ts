import { reportLimits } from './limits.ts'
import type { InspectionResponse } from '../../channel/messages/reports.ts'
import { errorMessage } from '../../lib/error-code.ts'

/** Values that an inspection can request: names, and functions that compute the values. */
type Inspectable = Readonly<Record<string, () => unknown>>

/**
 * Responds to an inspection with JSON texts. An unknown name gets no value, as in OpenZiti routers.
 * If the function for one value throws, the response contains an error instead of this value, and
 * still contains the other values.
 */
export function inspectRouter(
  names: readonly string[],
  inspectable: Inspectable,
): InspectionResponse {
  const errors: string[] = []
  const values: { name: string; value: string }[] = []
  const { inspectedValuesMax, inspectedCharactersMax } = reportLimits
  for (const name of [...new Set(names)].slice(0, inspectedValuesMax)) {
    const make = Object.hasOwn(inspectable, name) ? inspectable[name] : undefined
    if (make === undefined) continue
    try {
      const value = JSON.stringify(make() ?? null)
      if (value.length <= inspectedCharactersMax) values.push({ name, value })
      else errors.push(`${name}: longer than ${inspectedCharactersMax} characters`)
    } catch (error) {
      errors.push(`${name}: ${errorMessage(error)}`)
    }
  }
  if (new Set(names).size > inspectedValuesMax) {
    errors.push(`more than ${inspectedValuesMax} values asked for at a time`)
  }
  return { errors, values }
}
