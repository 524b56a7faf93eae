import { bodyMemberForCreate, bodyMemberForAllWrites } from '../body-members.ts'
import { crudPermissions } from '../crud.ts'
import { defineEntity } from '../define-entity.ts'
import { booleanField, computedField, integerField, optionalTextField } from '../fields.ts'
import {
  connectedSymbol,
  routerCostMax,
  commonRouterFields,
  routerSymbols,
  routerFingerprintFieldRules,
  versionInfoField,
} from '../parts/router-fields.ts'
import { arraySchema, booleanSchema, textSchema, openObjectSchema } from '../response-schemas.ts'

const listenerList = arraySchema(openObjectSchema({ address: textSchema, protocol: textSchema }))

/**
 * Any router, as the fabric API shows it. Through the fabric API, routers are created with a given
 * id and without enrollment.
 */
export const fabricRouter = defineEntity({
  name: 'fabricRouter',
  plural: 'fabricRouters',
  collection: 'routers',
  table: 'router',
  operations: { fabric: crudPermissions('admin') },
  operationIds: {
    list: 'listRouters',
    create: 'createRouter',
    detail: 'detailRouter',
    replace: 'updateRouter',
    patch: 'patchRouter',
    delete: 'deleteRouter',
  },
  fields: {
    ...commonRouterFields,
    cost: integerField({ required: true, maximum: routerCostMax }),
    noTraversal: booleanField({ required: true }),
    fingerprint: optionalTextField(routerFingerprintFieldRules),
    connected: computedField({ from: 'routerStatus', shows: 'isOnline' }, booleanSchema),
    listenerAddresses: computedField(
      { from: 'routerStatus', shows: 'linkListeners' },
      listenerList,
      {
        nullIfEmpty: true,
      },
    ),
    versionInfo: versionInfoField,
  },
  body: {
    // The id appears in paths, in filters and as common name of the router's certificate, so only
    // certain characters are allowed.
    id: bodyMemberForCreate(
      { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$' },
      'required',
    ),
    fingerprint: bodyMemberForAllWrites({
      type: 'string',
      pattern: '^([0-9a-fA-F]{2}:?){0,64}$',
      maxLength: 191,
    }),
  },
  symbols: [...routerSymbols, connectedSymbol],
  links: ['terminators'],
  lists: {
    terminators: {
      of: 'fabricTerminator',
      through: 'naming',
      by: 'routerId',
      operationId: 'listRouterTerminators',
    },
  },
})
