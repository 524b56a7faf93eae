import type { CountMention } from './mentions.ts'
import type { MovedPaths } from './moved-paths.ts'

/**
 * Folders with mutations. Markers such as `@guard` in the sources contain the names of these
 * mutations (test/guards/README.md).
 */
const folders = ['test/attacks', 'test/guards', 'test/zoo']

/** Updates the markers in a source file after mutations were renamed. */
export function moveMarkers(text: string, moved: MovedPaths, count: CountMention): string {
  return text.replace(/(?<=^\s*\/\/ @guard ).+$/gm, (names) =>
    names.replace(/[^\s,:]+(?=[,:]|$)/g, (name) => {
      const after = newName(name, moved)
      if (after !== name) count('markers of mutations')
      return after
    }),
  )
}

function newName(name: string, moved: MovedPaths): string {
  for (const folder of folders) {
    const after = moved.files.get(`${folder}/${name}.mutation`)
    if (after?.startsWith(`${folder}/`) === true) {
      return after.slice(folder.length + 1, -'.mutation'.length)
    }
  }
  return name
}
