import { interceptFaults } from '../../lib/intercept/intercept-target.ts'
import { configType } from '../../entities/kinds/config-type.ts'
import { config } from '../../entities/kinds/config.ts'
import { normalizeBody } from '../../entities/normalize-body.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { type FieldFault, fieldProblem, Problem } from '../../lib/problems.ts'
import type { WritePreparer } from './write-preparer.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { SchemaValidator } from '../schemas/schema-validator.ts'

interface ConfigTypePreparerDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly schemas: SchemaValidator
}

/** Compiles the schema before it is stored, so that no config type has an unusable schema. */
export function configTypePreparer({ schemas }: ConfigTypePreparerDeps): WritePreparer {
  return async (call, mode, body) => {
    const prepared = normalizeBody(configType, mode, body)
    const schema = prepared.fields['schema']
    if (schema !== undefined) {
      refuseIf(await schemas.validateSchema(schema as JsonObject, call.sharer))
    }
    return prepared
  }
}

/**
 * Validates the data of a config against the schema of its config type in the local state. If the
 * config type changes before the write, validates the data again.
 */
export function configPreparer(deps: ConfigTypePreparerDeps): WritePreparer {
  return async (call, mode, body, configId) => {
    if (mode === 'create' && body['configTypeId'] === '') throw invalidType('')
    const prepared = normalizeBody(config, mode, body)
    const data = prepared.fields['data']
    if (data === undefined) return prepared
    const typeId =
      mode === 'create' ? prepared.fields['configTypeId'] : await typeIdOf(deps, configId)
    const id = String(typeId)
    const type = await deps.reads.latest(() => deps.state.get('configType', id))
    if (type === undefined) throw invalidType(id)
    refuseIf(await deps.schemas.validateData(type.schema, data, call.sharer))
    const warnings = interceptFaults(type.name, data).map(
      (fault) => `tunnels of Flotilla do not intercept all of this: ${fault}`,
    )
    const judgedOn = [{ entity: 'configType', id, revision: type.revision }] as const
    return { ...prepared, warnings, judgedOn }
  }
}

async function typeIdOf(deps: ConfigTypePreparerDeps, id: string): Promise<string> {
  const known = await deps.reads.latest(() => deps.state.get('config', id))
  if (known === undefined) {
    throw new Problem('NOT_FOUND', { detail: `config with id ${id} not found` })
  }
  return known.configTypeId
}

function invalidType(id: string): Problem {
  return fieldProblem('type', 'invalid config type', id.slice(0, 128))
}

function refuseIf(fault: FieldFault | null): void {
  if (fault !== null) throw new Problem('COULD_NOT_VALIDATE', { fault })
}
