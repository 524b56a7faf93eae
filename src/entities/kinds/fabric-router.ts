import { atCreate, inEveryBody } from '../body-members.ts'
import { crudOf } from '../crud.ts'
import { defineEntity } from '../define.ts'
import { boolean, computed, integer, optionalText } from '../fields.ts'
import {
  connectedSymbol,
  routerCostMax,
  routerFields,
  routerSymbols,
  uniqueFingerprint,
  versionInfo,
} from '../parts/router-fields.ts'
import { arrayOf, flag, text, wholeObject } from '../shapes.ts'

const listenerList = arrayOf(wholeObject({ address: text, protocol: text }))

/**
 * Any router, as the fabric API shows it. The fabric API creates routers with a given id and
 * without enrollment.
 */
export const fabricRouter = defineEntity({
  name: 'fabricRouter',
  plural: 'fabricRouters',
  collection: 'routers',
  table: 'router',
  operations: { fabric: crudOf('admin') },
  operationIds: {
    list: 'listRouters',
    create: 'createRouter',
    detail: 'detailRouter',
    replace: 'updateRouter',
    patch: 'patchRouter',
    delete: 'deleteRouter',
  },
  fields: {
    ...routerFields,
    cost: integer({ required: true, maximum: routerCostMax }),
    noTraversal: boolean({ required: true }),
    fingerprint: optionalText(uniqueFingerprint),
    connected: computed({ from: 'routerStatus', shows: 'isOnline' }, flag),
    listenerAddresses: computed({ from: 'routerStatus', shows: 'linkListeners' }, listenerList, {
      nullIfEmpty: true,
    }),
    versionInfo,
  },
  body: {
    // The id is used in paths, filters and the common name of its certificate.
    id: atCreate({ type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$' }, 'required'),
    fingerprint: inEveryBody({
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
