import type { NamedSchema } from '../../entities/operations.ts'
import { emptySchema } from '../../entities/schema.ts'
import {
  dateTime,
  links,
  text,
  wholeObject,
  closedObject,
  arraySchema,
} from '../../entities/shapes.ts'

/** Schemas of the envelope of responses, and of the fields that all records have. */

export const integer = { type: 'integer' } as const
export const texts = { type: 'array', items: text } as const

export const emptyBodySchema: NamedSchema = { name: 'empty', schema: emptySchema }

export const responseMetaSchema: NamedSchema = {
  name: 'meta',
  schema: closedObject(
    {
      apiEnrollmentVersion: text,
      apiVersion: text,
      detachedFrom: arraySchema(
        wholeObject({ entity: text, field: text, ids: texts, totalCount: integer }),
      ),
      filterableFields: texts,
      ignoredFields: texts,
      warnings: texts,
      pagination: wholeObject({ limit: integer, offset: integer, totalCount: integer }),
    },
    ['detachedFrom', 'filterableFields', 'ignoredFields', 'pagination', 'warnings'],
  ),
}

export const errorEnvelope: NamedSchema = {
  name: 'apiErrorEnvelope',
  schema: closedObject({
    error: closedObject(
      {
        code: text,
        message: text,
        requestId: text,
        cause: {
          type: 'object',
          properties: {
            field: text,
            reason: text,
            value: {},
            code: text,
            message: text,
            data: { type: 'object' },
          },
        },
        data: { type: 'object' },
      },
      ['cause', 'data'],
    ),
    meta: responseMetaSchema.schema,
  }),
}

export const baseProperties = {
  _links: links,
  createdAt: dateTime,
  id: text,
  tags: { type: 'object' },
  updatedAt: dateTime,
} as const
export const baseRequired = ['_links', 'createdAt', 'id', 'updatedAt'] as const
