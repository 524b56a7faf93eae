import { CommandKind } from '../../../proto/gen/command_pb.ts'
import { controllerSetting, globalSettingId } from '../../entities/kinds/controller-setting.ts'
import { mergeMembers } from '../../entities/nested-schemas.ts'
import { membersAtLevel } from '../../entities/feature-levels.ts'
import { normalizeBody } from '../../entities/normalize-body.ts'
import { requestSchema } from '../../entities/schema.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { requestOrigin, type RequestContext } from '../http/request-context.ts'
import { detailResponse, emptyResponse, type Reply } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { effectiveSettingsSchema } from '../schemas/about.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import { requireCaller } from '../sessions/current-identity.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'

interface ControllerSettingOperationsDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly writer: ProposalWriter
}

const common = { tag: 'controllerSettings', apis: ['management'], success: 200 } as const
const path = '/controller-settings/{id}/effective'
const kind = 'controllerSetting'

/**
 * Operations on controller settings. As in OpenZiti, the path that shows the effective value of a
 * setting, `effective`, is also the path that changes it.
 */
export function controllerSettingOperations(deps: ControllerSettingOperationsDeps): Operation[] {
  const change = {
    ...common,
    permission: 'controller-setting.update',
    path,
    response: { kind: 'detail', schema: emptyBodySchema },
    refusals: [404],
  } as const
  return [
    {
      ...common,
      operationId: 'detailControllerSettingEffective',
      summary: 'Show the stored and the effective settings of a controller',
      permission: 'controller-setting.read',
      method: 'GET',
      path,
      response: { kind: 'detail', schema: effectiveSettingsSchema },
      refusals: [404],
      handle: (call) => effective(deps, call),
    },
    operationWithBody({
      ...change,
      operationId: 'updateControllerSetting',
      summary: 'Update the settings of a controller (all fields)',
      method: 'PUT',
      body: { schema: bodyOf('replace'), isRequired: true },
      handle: (call, body) => write(deps, call, 'replace', body),
    }),
    operationWithBody({
      ...change,
      operationId: 'patchControllerSetting',
      summary: 'Update settings of a controller',
      method: 'PATCH',
      body: { schema: bodyOf('patch'), isRequired: true },
      handle: (call, body) => write(deps, call, 'patch', body),
    }),
    {
      ...change,
      operationId: 'deleteControllerSetting',
      summary: 'Delete the settings of a controller',
      permission: 'controller-setting.delete',
      method: 'DELETE',
      refusals: [404, 409],
      handle: async (call) => {
        await deps.writer.deleteEntity(requestOrigin(call), kind, call.param('id'))
        return emptyResponse()
      },
    },
  ]
}

function bodyOf(mode: 'replace' | 'patch') {
  const name = mode === 'replace' ? 'controllerSettingUpdate' : 'controllerSettingPatch'
  return { name, schema: requestSchema(controllerSetting, mode) }
}

async function write(
  { state, writer }: ControllerSettingOperationsDeps,
  call: RequestContext,
  mode: 'replace' | 'patch',
  body: JsonObject,
): Promise<Reply> {
  const level = state.featureLevel
  const { known, later } = membersAtLevel(controllerSetting, body, level)
  const { fields, ignoredFields } = normalizeBody(controllerSetting, mode, known)
  const command = mode === 'replace' ? CommandKind.ENTITY_REPLACE : CommandKind.ENTITY_PATCH
  await writer.entity(
    requestOrigin(call),
    command,
    kind,
    call.param('id'),
    membersAtLevel(controllerSetting, fields, level).known,
  )
  return emptyResponse([...ignoredFields, ...later])
}

function effective(
  deps: ControllerSettingOperationsDeps,
  call: RequestContext,
): Reply | Promise<Reply> {
  const { state } = deps
  const id = call.param('id')
  return deps.reads.found(call, `${kind} with id ${id}`, () => {
    const record = state.get(kind, id)
    if (record === undefined) return null
    const { oidc, ...base } = state.detail(kind, record, requireCaller(call).identity.id)
    const ofAll = state.get(kind, globalSettingId)?.oidc ?? {}
    return detailResponse({
      ...base,
      effective: { oidc: mergeMembers(ofAll, record.oidc) },
      instance: { oidc },
    })
  })
}
